//go:build linux && cgo && asan

package host

// AddressSanitizer looks for the function that throws C++ exceptions when the
// program starts, and ends the program when a library throws and it was not
// there. So libstdc++ is linked, which otherwise is opened with the first library.

// #cgo LDFLAGS: -Wl,--no-as-needed -lstdc++
import "C"
