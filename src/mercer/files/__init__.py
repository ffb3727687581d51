"""Model files: one safetensors file whose metadata is a JSON document."""
