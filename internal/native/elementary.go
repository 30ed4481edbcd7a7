package native

import "github.com/loris-ml/loris/ir"

// elementary returns the rows of the elementary functions.
func elementary() map[ir.Op]emitters { return map[ir.Op]emitters{} }
