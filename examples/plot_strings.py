"""
A kernel on strings
===================

Kernels do not need vectors. The spectrum kernel compares two strings by the short substrings they share,
which is enough to tell languages apart. Nothing here knows a word of any of them.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge
from mercer.kernels import Spectrum

sentences = {
    "English": [
        "the children are playing in the garden behind the house",
        "she was reading a book about the history of the world",
        "it has been raining since the early morning",
        "they are going to the market this afternoon",
        "what do you think about when you cannot sleep",
        "the old man told us nothing of the war",
        "we had never seen anything like this before",
        "there is a light in the window at night",
    ],
    "German": [
        "die kinder spielen im garten hinter dem haus",
        "sie las ein buch über die geschichte der welt",
        "es regnet schon seit dem frühen morgen",
        "heute nachmittag gehen sie auf den markt",
        "woran denkst du wenn du nicht schlafen kannst",
        "der alte mann hat uns nichts vom krieg erzählt",
        "so etwas hatten wir noch nie gesehen",
        "in der nacht brennt ein licht im fenster",
    ],
    "Italian": [
        "i bambini giocano nel giardino dietro la casa",
        "lei leggeva un libro sulla storia del mondo",
        "piove dalle prime ore della mattina",
        "questo pomeriggio vanno al mercato",
        "a cosa pensi quando non riesci a dormire",
        "il vecchio non ci ha raccontato niente della guerra",
        "non avevamo mai visto una cosa simile",
        "di notte c'è una luce alla finestra",
    ],
    "Finnish": [
        "lapset leikkivät puutarhassa talon takana",
        "hän luki kirjaa maailman historiasta",
        "on satanut aikaisesta aamusta lähtien",
        "tänään iltapäivällä he menevät torille",
        "mitä sinä ajattelet kun et saa unta",
        "vanha mies ei kertonut meille mitään sodasta",
        "emme olleet koskaan nähneet mitään sellaista",
        "yöllä ikkunassa palaa valo",
    ],
}
languages = list(sentences)
texts = [text for group in sentences.values() for text in group]
labels = np.repeat(range(4), 8)

# %%
# The kernel counts substrings of two letters, and of three, and adds the two: kernels on strings have the
# same algebra as all others.

kernel = Spectrum(k=2) + Spectrum(k=3)
kernel(["house", "houses", "maison"]).round(2)

# %%
# A regression on one column per language, one for yes and zero for no, classifies by the largest column.
# Leave-one-out predictions judge it without a test set: each sentence is predicted from the other 31.

model = KernelRidge(kernel, alpha=0.5).fit(texts, np.eye(4)[labels])
guesses = model.loo_predictions_.argmax(axis=1)
print(f"{np.sum(guesses == labels)} of {len(texts)} sentences recognised by the others")
for i in np.flatnonzero(guesses != labels):
    print(f"  taken for {languages[guesses[i]]}: {texts[i]}")

# %%
# New strings need no preparation.

for text in (
    "where have you been all this time",
    "dove sei stato tutto questo tempo",
    "wo bist du die ganze zeit gewesen",
):
    scores = model.predict([text])[0]
    print(f"{languages[scores.argmax()]:<8} {scores.round(2)}  {text}")

# %%
# The Gram matrix shows four blocks on the diagonal, one per language, before any model has been fitted.

K = kernel(texts)
np.fill_diagonal(K, np.nan)
fig, ax = plt.subplots(figsize=(5.6, 4.8), layout="constrained")
image = ax.imshow(K, cmap="cividis", vmin=0.0, vmax=0.7)
fig.colorbar(image, label="k(s, t)", shrink=0.85, extend="max")
for border in (7.5, 15.5, 23.5):
    ax.axhline(border, color="white", linewidth=1.5)
    ax.axvline(border, color="white", linewidth=1.5)
ax.set_xticks(np.arange(3.5, 32, 8), languages)
ax.set_yticks(np.arange(3.5, 32, 8), languages)
ax.set_title("Shared substrings of 32 sentences", fontsize=11)
plt.show()
