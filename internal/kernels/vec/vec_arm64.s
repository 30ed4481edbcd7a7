//go:build !noasm

#include "textflag.h"

// Go's assembler has no sums, products and comparisons of vectors of floats: these are their
// encodings, of four f32 each. d and n may be the same register.
#define FADD(m, n, d) WORD $(0x4E20D400 | m<<16 | n<<5 | d) // d = n + m
#define FMUL(m, n, d) WORD $(0x6E20DC00 | m<<16 | n<<5 | d) // d = n · m
#define FCMGT(m, n, d) WORD $(0x6EA0E400 | m<<16 | n<<5 | d) // all bits of d where n > m
#define FCMEQ(m, n, d) WORD $(0x4E20E400 | m<<16 | n<<5 | d) // all bits of d where n = m
#define ORN(m, n, d) WORD $(0x4EE01C00 | m<<16 | n<<5 | d) // d = n | ^m

// func addNEON(dst, x, y *float32, n int)
TEXT ·addNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD x+8(FP), R1
	MOVD y+16(FP), R2
	MOVD n+24(FP), R3

loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	VLD1.P 32(R2), [V2.S4, V3.S4]
	FADD(2, 0, 0)
	FADD(3, 1, 1)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R3
	BNE loop
	RET

// func scaleNEON(dst, src *float32, f float32, n int)
TEXT ·scaleNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	FMOVS f+16(FP), F2
	VDUP V2.S[0], V2.S4
	MOVD n+24(FP), R3

loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	FMUL(2, 0, 0)
	FMUL(2, 1, 1)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R3
	BNE loop
	RET

// func mostNEON(best, x *float32, n int)
TEXT ·mostNEON(SB), NOSPLIT, $0-24
	MOVD best+0(FP), R0
	MOVD x+8(FP), R1
	MOVD n+16(FP), R3

loop:
	VLD1 (R0), [V0.S4, V1.S4]
	VLD1.P 32(R1), [V2.S4, V3.S4]
	FCMGT(0, 2, 4)
	FCMGT(1, 3, 5)
	FCMEQ(2, 2, 6)
	FCMEQ(3, 3, 7)
	ORN(6, 4, 4) // greater, or NaN
	ORN(7, 5, 5)
	VBIT V4.B16, V2.B16, V0.B16
	VBIT V5.B16, V3.B16, V1.B16
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R3
	BNE loop
	RET

// func halvesNEON(even, odd, x *float32, n int)
TEXT ·halvesNEON(SB), NOSPLIT, $0-32
	MOVD even+0(FP), R0
	MOVD odd+8(FP), R1
	MOVD x+16(FP), R2
	MOVD n+24(FP), R3

loop:
	VLD2.P 32(R2), [V0.S4, V1.S4]
	VST1.P [V0.S4], 16(R0)
	VST1.P [V1.S4], 16(R1)
	SUBS $8, R3
	BNE loop
	RET
