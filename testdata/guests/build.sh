#!/bin/sh
# Rebuilds the guest binaries beside this script. Needs nasm.
set -eu
cd "$(dirname "$0")"
for source in *.asm; do
    nasm -f bin -o "${source%.asm}.bin" "$source"
done
# The same as an ELF.
nasm -f bin -D ELF -o multiboot.elf multiboot.asm
