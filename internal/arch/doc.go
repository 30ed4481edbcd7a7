// Package arch holds the rules of the code as tests: which package may import
// which, how long files may be, and that exported names are documented.
package arch
