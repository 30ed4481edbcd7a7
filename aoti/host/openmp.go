package host

// The runtimes that libraries call besides the shim are part of every program
// that opens one.
import _ "github.com/loris-ml/loris/aoti/host/openmp"
