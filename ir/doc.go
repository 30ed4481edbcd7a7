// Package ir defines dtypes, shapes, devices, the op table and the immutable,
// hash-carrying nodes that recorded programs are made of.
//
// One row of the table (Spec) is the whole meaning of an op: its signature in
// ATen's notation, how dtypes promote, the shapes it gives, its scalar meaning
// or its decomposition into other ops, and its gradient.
package ir
