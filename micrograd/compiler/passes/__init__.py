"""The passes of the compiler, each from one representation of a program to the next."""
