//go:build cgo || mpi

package main

// A program with MPI is linked dynamically, as one with cgo is; one without either can be static.
import _ "github.com/loris-ml/loris/dist/mpi"
