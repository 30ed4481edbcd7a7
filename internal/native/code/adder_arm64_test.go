//go:build linux && !noasm

package code

import (
	"github.com/loris-ml/loris/internal/native/a64"
	"github.com/loris-ml/loris/internal/native/x64"
)

// adder returns code that adds n to the number that the frame is.
func adder(n int32) []byte {
	var a a64.Asm
	a.MovImm(x64.RAX, n)
	a.ArithStore(x64.Add, x64.At(x64.RDI, 0), x64.RAX)
	a.Ret()
	text, err := a.Finish()
	if err != nil {
		panic(err)
	}
	return text
}
