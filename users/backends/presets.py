"""The one model that all presets serve: OpenCLIP ViT-B/32."""

DIMENSION = 512
SPACE = "openclip_vit_b32"
