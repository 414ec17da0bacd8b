"""The genetic mapping of Guimarães & Rodrigues (2003): start with ``plan``."""
