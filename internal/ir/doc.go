// Package ir defines dtypes, shapes, devices, the op table and the immutable,
// hash-carrying nodes that recorded programs are made of.
//
// One row of the table (Spec) holds every fact about an op: its signature in ATen's notation, how
// dtypes promote, the shapes it gives, its scalar meaning or its decomposition into other ops, its
// gradient, and what backends and tests ask about it.
package ir

//go:generate go run ../gen/irops
