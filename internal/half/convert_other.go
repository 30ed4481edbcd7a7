//go:build !amd64 || noasm

package half

// There are no loops for whole blocks on this processor.

func widenBF16(dst []float32, src []uint16) int  { return 0 }
func widenF16(dst []float32, src []uint16) int   { return 0 }
func narrowBF16(dst []uint16, src []float32) int { return 0 }
func narrowF16(dst []uint16, src []float32) int  { return 0 }
func widenE4M3(dst []float32, src []uint8) int   { return 0 }
func widenE5M2(dst []float32, src []uint8) int   { return 0 }
func narrowE4M3(dst []uint8, src []float32) int  { return 0 }
func narrowE5M2(dst []uint8, src []float32) int  { return 0 }
