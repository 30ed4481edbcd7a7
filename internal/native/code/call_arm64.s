//go:build linux && !noasm

#include "textflag.h"

// func call(entry uintptr, frame unsafe.Pointer)
//
// Generated code gets the frame in R7. It keeps R18, R26 to R30 and RSP, and uses no stack. The
// barrier drops instructions that this core has fetched ahead: those of code that lay in the same
// place before are not run.
TEXT ·call(SB), 0, $16-16
	MOVD frame+8(FP), R7
	MOVD entry+0(FP), R0
	ISB  $15
	CALL (R0)
	RET

// func callFlushing(entry uintptr, frame unsafe.Pointer)
//
// It is call with the bit of FPCR set (24) that takes subnormal operands as zero and gives zero for
// subnormal results. Go expects FPCR as it was, and the runtime can't stop the goroutine in between.
TEXT ·callFlushing(SB), 0, $32-16
	MOVD frame+8(FP), R7
	MOVD entry+0(FP), R0
	MOVD FPCR, R1
	MOVD R1, was-8(SP)
	ORR  $(1<<24), R1
	MOVD R1, FPCR
	ISB  $15
	CALL (R0)
	MOVD was-8(SP), R1
	MOVD R1, FPCR
	RET

// func publish(p unsafe.Pointer, n int)
//
// The lines of both caches have the sizes that CTR_EL0 gives, as logarithms of words.
TEXT ·publish(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1
	ADD  R0, R1, R1
	MRS  CTR_EL0, R2
	MOVD $4, R5

	UBFX $16, R2, $4, R3
	LSL  R3, R5, R3
	SUB  $1, R3, R4
	BIC  R4, R0, R4

data:
	DC  CVAU, R4
	ADD R3, R4, R4
	CMP R1, R4
	BLT data
	DSB $11

	AND  $15, R2, R3
	LSL  R3, R5, R3
	SUB  $1, R3, R4
	BIC  R4, R0, R4

fetched:
	WORD $0xd50b7524    // ic ivau, x4
	ADD  R3, R4, R4
	CMP  R1, R4
	BLT  fetched
	DSB  $11
	ISB  $15
	RET
