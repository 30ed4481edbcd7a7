// Package glue holds the machine code, made by a C compiler once, that every exported library begins
// with: AOTInductor's container interface and an interpreter of plans. Its source is in the folder c;
// build.sh makes the object again, byte for byte with the same compiler.
package glue

import "embed"

// AMD64 is the relocatable object for x86-64 under Linux.
//
//go:embed amd64.o
var AMD64 []byte

// CUDA is that object for models that run on a GPU. It has no kernels of its own, so it wants no Code, and
// images of kernels instead.
//
//go:embed cuda.o
var CUDA []byte

// Source is what the objects are made of. With LORIS_COMPILED defined the code of kernels is the number of a
// function in a table, loris_kernels, and the source is for any processor.
//
//go:embed c/*.c c/*.h
var Source embed.FS

// The symbols that the object leaves to whoever links it: the words of a plan, texts, literals,
// machine code, images of a GPU's kernels, weights, and the table of functions that calls name by number.
const (
	Words     = "loris_words"
	Text      = "loris_text"
	Literals  = "loris_literals"
	Code      = "loris_code"
	Images    = "loris_images"
	Weights   = "loris_weights"
	Functions = "loris_functions"
)
