//go:build !asan

package sanitizer

// Address says whether the address sanitizer is compiled in.
const Address = false
