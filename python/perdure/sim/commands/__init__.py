"""The commands of `perdure sim`, one file each."""
