package x64

// Op is a vector or mask instruction.
type Op uint8

// The vector and mask instructions, under their mnemonics without the v. PS and
// PD, D and Q mean elements of 32 and 64 bits.
const (
	NoOp Op = iota
	// Moves.
	MOVUPS
	MOVUPSst
	MOVAPS
	MOVNTPS
	MOVDQU8
	MOVDQU8st
	MOVDQU16
	MOVDQU16st
	MOVDQU32
	MOVDQU32st
	MOVDQU64
	MOVDQU64st
	MASKMOVPS
	MASKMOVPSst
	MASKMOVPD
	MASKMOVPDst
	MOVDst
	MOVQst
	MOVSDst
	BROADCASTSS
	BROADCASTSD
	PBROADCASTB
	PBROADCASTW
	PGATHERDD
	PGATHERDQ
	// Floats.
	ADDPS
	ADDPD
	SUBPS
	SUBPD
	MULPS
	MULPD
	DIVPS
	DIVPD
	MINPS
	MINPD
	MAXPS
	MAXPD
	SQRTPS
	SQRTPD
	CMPPS
	CMPPD
	ROUNDPS
	ROUNDPD
	FMADD213PS
	FMADD213PD
	FMADD231PS
	FMADD231PD
	FNMADD213PS
	FNMADD213PD
	FNMADD231PS
	FNMADD231PD
	FMSUB213PS
	FMSUB213PD
	SCALEFPS
	SCALEFPD
	GETEXPPS
	GETEXPPD
	GETMANTPS
	FIXUPIMMPS
	FIXUPIMMPD
	GETMANTPD
	RCP14PS
	RCP14PD
	RSQRT14PS
	RSQRT14PD
	PTERNLOGD
	PTERNLOGQ
	BLENDVPS
	BLENDVPD
	PBLENDMD
	PBLENDMQ
	// Conversions.
	CVTDQ2PS
	CVTTPS2DQ
	CVTPS2PD
	CVTPD2PS
	CVTDQ2PD
	CVTTPD2DQ
	CVTQQ2PD
	CVTQQ2PS
	CVTTPD2QQ
	CVTTPS2QQ
	CVTPH2PS
	CVTPS2PH
	CVTSI2SD
	CVTTSD2SI
	// Integers.
	PADDD
	PADDQ
	PADDB
	PADDW
	PSUBB
	PSUBW
	PMULLW
	PSRLW
	PSLLW
	PMINUB
	PMAXUB
	PMINSB
	PMINSW
	PMAXSB
	PMAXSW
	PABSB
	PABSW
	PCMPEQB
	PCMPEQW
	PCMPGTB
	PCMPGTW
	PBLENDVB
	PSUBD
	PSUBQ
	PMULLD
	PMULLQ
	PMULUDQ
	PANDD
	PANDQ
	PANDND
	PORD
	PORQ
	PXORD
	PXORQ
	PMINSD
	PMINUD
	PMINUQ
	PMAXUD
	PMAXUQ
	PMAXSD
	PMINSQ
	PMAXSQ
	PABSD
	PABSQ
	PCMPEQD
	PCMPEQQ
	PCMPGTD
	PCMPGTQ
	PCMPD
	PCMPQ
	PTESTMB
	PTESTMD
	PTESTMQ
	PSLLD
	PSRLD
	PSRAD
	PSLLQ
	PSRLQ
	PSLLVD
	PSRAVD
	PSLLVQ
	PSRLVD
	PSRLVQ
	PSRAVQ
	PMOVZXBD
	PMOVSXBD
	PMOVZXWD
	PMOVSXWD
	PMOVSXDQ
	PMOVDB
	PMOVDW
	PMOVQD
	PSHUFB
	PSHUFD
	SHUFPS
	PERMQ
	PERMD
	PERMQV
	PERMT2D
	PERMT2Q
	PERMT2W
	SHUFF64X2
	EXTRACTI128
	INSERTI128
	EXTRACTI64X4
	INSERTI64X4
	// Masks.
	KMOVW
	KMOVWld
	KMOVWst
	KMOVWr
	KANDW
	KANDNW
	KORW
	KXORW
	KXNORW
	KNOTW
	numOps
)

var ops = [numOps]enc{
	MOVUPS:      {"movups", 0, 1, 0x10, 0, 0, 0, 0, 0},
	MOVUPSst:    {"movups", 0, 1, 0x11, 0, 0, 0, 0, 0},
	MOVAPS:      {"movaps", 0, 1, 0x28, 0, 0, 0, 0, 0},
	MOVNTPS:     {"movntps", 0, 1, 0x2b, 0, 0, 0, 0, 0},
	MOVDQU8:     {"movdqu8", 3, 1, 0x6f, 0, 0, 0, 0, onlyEVEX},
	MOVDQU8st:   {"movdqu8", 3, 1, 0x7f, 0, 0, 0, 0, onlyEVEX},
	MOVDQU16:    {"movdqu16", 3, 1, 0x6f, 0, 1, 0, 0, onlyEVEX},
	MOVDQU16st:  {"movdqu16", 3, 1, 0x7f, 0, 1, 0, 0, onlyEVEX},
	MOVDQU32:    {"movdqu32", 2, 1, 0x6f, 0, 0, 0, 0, onlyEVEX},
	MOVDQU32st:  {"movdqu32", 2, 1, 0x7f, 0, 0, 0, 0, onlyEVEX},
	MOVDQU64:    {"movdqu64", 2, 1, 0x6f, 0, 1, 0, 0, onlyEVEX},
	MOVDQU64st:  {"movdqu64", 2, 1, 0x7f, 0, 1, 0, 0, onlyEVEX},
	MASKMOVPS:   {"maskmovps", 1, 2, 0x2c, 0, 0, 0, 0, onlyVEX},
	MASKMOVPSst: {"maskmovps", 1, 2, 0x2e, 0, 0, 0, 0, onlyVEX},
	MASKMOVPD:   {"maskmovpd", 1, 2, 0x2d, 0, 0, 0, 0, onlyVEX},
	MASKMOVPDst: {"maskmovpd", 1, 2, 0x2f, 0, 0, 0, 0, onlyVEX},
	MOVDst:      {"movd", 1, 1, 0x7e, 0, 0, 0, 0, 0},
	MOVQst:      {"movq", 1, 1, 0xd6, 0, 1, 0, 0, 0},
	MOVSDst:     {"movsd", 3, 1, 0x11, 0, 1, 0, 0, 0},
	BROADCASTSS: {"broadcastss", 1, 2, 0x18, 0, 0, 0, 0, 0},
	BROADCASTSD: {"broadcastsd", 1, 2, 0x19, 0, 1, 0, 0, 0},
	PBROADCASTB: {"pbroadcastb", 1, 2, 0x78, 0, 0, 0, 0, 0},
	PBROADCASTW: {"pbroadcastw", 1, 2, 0x79, 0, 0, 0, 0, 0},

	PGATHERDD: {"pgatherdd", 1, 2, 0x90, 0, 0, 0, 0, vectorIndex}, PGATHERDQ: {"pgatherdq", 1, 2, 0x90, 1, 1, 0, 0, vectorIndex},

	ADDPS: {"addps", 0, 1, 0x58, 0, 0, 4, 0, 0}, ADDPD: {"addpd", 1, 1, 0x58, 0, 1, 8, 0, 0},
	SUBPS: {"subps", 0, 1, 0x5c, 0, 0, 4, 0, 0}, SUBPD: {"subpd", 1, 1, 0x5c, 0, 1, 8, 0, 0},
	MULPS: {"mulps", 0, 1, 0x59, 0, 0, 4, 0, 0}, MULPD: {"mulpd", 1, 1, 0x59, 0, 1, 8, 0, 0},
	DIVPS: {"divps", 0, 1, 0x5e, 0, 0, 4, 0, 0}, DIVPD: {"divpd", 1, 1, 0x5e, 0, 1, 8, 0, 0},
	MINPS: {"minps", 0, 1, 0x5d, 0, 0, 4, 0, 0}, MINPD: {"minpd", 1, 1, 0x5d, 0, 1, 8, 0, 0},
	MAXPS: {"maxps", 0, 1, 0x5f, 0, 0, 4, 0, 0}, MAXPD: {"maxpd", 1, 1, 0x5f, 0, 1, 8, 0, 0},
	SQRTPS: {"sqrtps", 0, 1, 0x51, 0, 0, 4, 0, 0}, SQRTPD: {"sqrtpd", 1, 1, 0x51, 0, 1, 8, 0, 0},
	CMPPS: {"cmpps", 0, 1, 0xc2, 0, 0, 4, 0, hasImm}, CMPPD: {"cmppd", 1, 1, 0xc2, 0, 1, 8, 0, hasImm},
	ROUNDPS: {"roundps", 1, 3, 0x08, 0, 0, 4, 0, hasImm}, ROUNDPD: {"roundpd", 1, 3, 0x09, 0, 1, 8, 0, hasImm},
	FMADD213PS: {"fmadd213ps", 1, 2, 0xa8, 0, 0, 4, 0, 0}, FMADD213PD: {"fmadd213pd", 1, 2, 0xa8, 1, 1, 8, 0, 0},
	FMADD231PS: {"fmadd231ps", 1, 2, 0xb8, 0, 0, 4, 0, 0}, FMADD231PD: {"fmadd231pd", 1, 2, 0xb8, 1, 1, 8, 0, 0},
	FNMADD213PS: {"fnmadd213ps", 1, 2, 0xac, 0, 0, 4, 0, 0}, FNMADD213PD: {"fnmadd213pd", 1, 2, 0xac, 1, 1, 8, 0, 0},
	FNMADD231PS: {"fnmadd231ps", 1, 2, 0xbc, 0, 0, 4, 0, 0}, FNMADD231PD: {"fnmadd231pd", 1, 2, 0xbc, 1, 1, 8, 0, 0},
	FMSUB213PS: {"fmsub213ps", 1, 2, 0xaa, 0, 0, 4, 0, 0}, FMSUB213PD: {"fmsub213pd", 1, 2, 0xaa, 1, 1, 8, 0, 0},
	SCALEFPS: {"scalefps", 1, 2, 0x2c, 0, 0, 4, 0, onlyEVEX}, SCALEFPD: {"scalefpd", 1, 2, 0x2c, 0, 1, 8, 0, onlyEVEX},
	GETEXPPS: {"getexpps", 1, 2, 0x42, 0, 0, 4, 0, onlyEVEX}, GETEXPPD: {"getexppd", 1, 2, 0x42, 0, 1, 8, 0, onlyEVEX},
	GETMANTPS: {"getmantps", 1, 3, 0x26, 0, 0, 4, 0, onlyEVEX | hasImm}, GETMANTPD: {"getmantpd", 1, 3, 0x26, 0, 1, 8, 0, onlyEVEX | hasImm},
	FIXUPIMMPS: {"fixupimmps", 1, 3, 0x54, 0, 0, 4, 0, onlyEVEX | hasImm}, FIXUPIMMPD: {"fixupimmpd", 1, 3, 0x54, 0, 1, 8, 0, onlyEVEX | hasImm},
	RCP14PS: {"rcp14ps", 1, 2, 0x4c, 0, 0, 4, 0, onlyEVEX}, RCP14PD: {"rcp14pd", 1, 2, 0x4c, 0, 1, 8, 0, onlyEVEX},
	RSQRT14PS: {"rsqrt14ps", 1, 2, 0x4e, 0, 0, 4, 0, onlyEVEX}, RSQRT14PD: {"rsqrt14pd", 1, 2, 0x4e, 0, 1, 8, 0, onlyEVEX},
	PTERNLOGD: {"pternlogd", 1, 3, 0x25, 0, 0, 4, 0, onlyEVEX | hasImm}, PTERNLOGQ: {"pternlogq", 1, 3, 0x25, 0, 1, 8, 0, onlyEVEX | hasImm},
	BLENDVPS: {"blendvps", 1, 3, 0x4a, 0, 0, 0, 0, onlyVEX | hasImm}, BLENDVPD: {"blendvpd", 1, 3, 0x4b, 0, 0, 0, 0, onlyVEX | hasImm},
	PBLENDMD: {"pblendmd", 1, 2, 0x64, 0, 0, 4, 0, onlyEVEX}, PBLENDMQ: {"pblendmq", 1, 2, 0x64, 0, 1, 8, 0, onlyEVEX},

	CVTDQ2PS:  {"cvtdq2ps", 0, 1, 0x5b, 0, 0, 4, 0, 0},
	CVTTPS2DQ: {"cvttps2dq", 2, 1, 0x5b, 0, 0, 4, 0, 0},
	CVTPS2PD:  {"cvtps2pd", 0, 1, 0x5a, 0, 0, 0, 0, 0},
	CVTPD2PS:  {"cvtpd2ps", 1, 1, 0x5a, 0, 1, 0, 0, 0},
	CVTDQ2PD:  {"cvtdq2pd", 2, 1, 0xe6, 0, 0, 0, 0, 0},
	CVTTPD2DQ: {"cvttpd2dq", 1, 1, 0xe6, 0, 1, 0, 0, 0},
	CVTQQ2PD:  {"cvtqq2pd", 2, 1, 0xe6, 0, 1, 0, 0, onlyEVEX},
	CVTQQ2PS:  {"cvtqq2ps", 0, 1, 0x5b, 0, 1, 0, 0, onlyEVEX},
	CVTTPD2QQ: {"cvttpd2qq", 1, 1, 0x7a, 0, 1, 0, 0, onlyEVEX},
	CVTTPS2QQ: {"cvttps2qq", 1, 1, 0x7a, 0, 0, 0, 0, onlyEVEX},
	CVTPH2PS:  {"cvtph2ps", 1, 2, 0x13, 0, 0, 0, 0, 0},
	CVTPS2PH:  {"cvtps2ph", 1, 3, 0x1d, 0, 0, 0, 0, hasImm | noMem},
	CVTSI2SD:  {"cvtsi2sd", 3, 1, 0x2a, 1, 1, 0, 0, onlyVEX},
	CVTTSD2SI: {"cvttsd2si", 3, 1, 0x2c, 1, 1, 0, 0, onlyVEX},

	PADDD: {"paddd", 1, 1, 0xfe, 0, 0, 4, 0, 0}, PADDQ: {"paddq", 1, 1, 0xd4, 0, 1, 8, 0, 0},
	PADDB: {"paddb", 1, 1, 0xfc, 0, 0, 0, 0, onlyVEX}, PSUBB: {"psubb", 1, 1, 0xf8, 0, 0, 0, 0, onlyVEX},
	PADDW: {"paddw", 1, 1, 0xfd, 0, 0, 0, 0, onlyVEX}, PSUBW: {"psubw", 1, 1, 0xf9, 0, 0, 0, 0, onlyVEX},
	PMULLW: {"pmullw", 1, 1, 0xd5, 0, 0, 0, 0, onlyVEX},
	PSRLW:  {"psrlw", 1, 1, 0x71, 0, 0, 0, 8 + 2, onlyVEX | hasImm | noMem}, PSLLW: {"psllw", 1, 1, 0x71, 0, 0, 0, 8 + 6, onlyVEX | hasImm | noMem},
	PMINUB: {"pminub", 1, 1, 0xda, 0, 0, 0, 0, onlyVEX}, PMAXUB: {"pmaxub", 1, 1, 0xde, 0, 0, 0, 0, onlyVEX},
	PMINSB: {"pminsb", 1, 2, 0x38, 0, 0, 0, 0, onlyVEX}, PMAXSB: {"pmaxsb", 1, 2, 0x3c, 0, 0, 0, 0, onlyVEX},
	PMINSW: {"pminsw", 1, 1, 0xea, 0, 0, 0, 0, onlyVEX}, PMAXSW: {"pmaxsw", 1, 1, 0xee, 0, 0, 0, 0, onlyVEX},
	PABSW:   {"pabsw", 1, 2, 0x1d, 0, 0, 0, 0, onlyVEX},
	PCMPEQW: {"pcmpeqw", 1, 1, 0x75, 0, 0, 0, 0, onlyVEX}, PCMPGTW: {"pcmpgtw", 1, 1, 0x65, 0, 0, 0, 0, onlyVEX},
	PABSB:   {"pabsb", 1, 2, 0x1c, 0, 0, 0, 0, onlyVEX},
	PCMPEQB: {"pcmpeqb", 1, 1, 0x74, 0, 0, 0, 0, onlyVEX}, PCMPGTB: {"pcmpgtb", 1, 1, 0x64, 0, 0, 0, 0, onlyVEX},
	PBLENDVB: {"pblendvb", 1, 3, 0x4c, 0, 0, 0, 0, onlyVEX | hasImm},
	PSUBD:    {"psubd", 1, 1, 0xfa, 0, 0, 4, 0, 0}, PSUBQ: {"psubq", 1, 1, 0xfb, 0, 1, 8, 0, 0},
	PMULLD: {"pmulld", 1, 2, 0x40, 0, 0, 4, 0, 0}, PMULLQ: {"pmullq", 1, 2, 0x40, 0, 1, 8, 0, onlyEVEX},
	PMULUDQ: {"pmuludq", 1, 1, 0xf4, 0, 1, 8, 0, 0},
	PANDD:   {"pandd", 1, 1, 0xdb, 0, 0, 4, 0, 0}, PANDQ: {"pandq", 1, 1, 0xdb, 0, 1, 8, 0, 0},
	PANDND: {"pandnd", 1, 1, 0xdf, 0, 0, 4, 0, 0},
	PORD:   {"pord", 1, 1, 0xeb, 0, 0, 4, 0, 0}, PORQ: {"porq", 1, 1, 0xeb, 0, 1, 8, 0, 0},
	PXORD: {"pxord", 1, 1, 0xef, 0, 0, 4, 0, 0}, PXORQ: {"pxorq", 1, 1, 0xef, 0, 1, 8, 0, 0},
	PMINSD: {"pminsd", 1, 2, 0x39, 0, 0, 4, 0, 0}, PMINSQ: {"pminsq", 1, 2, 0x39, 0, 1, 8, 0, onlyEVEX},
	PMAXSD: {"pmaxsd", 1, 2, 0x3d, 0, 0, 4, 0, 0}, PMAXSQ: {"pmaxsq", 1, 2, 0x3d, 0, 1, 8, 0, onlyEVEX},
	PMINUD: {"pminud", 1, 2, 0x3b, 0, 0, 4, 0, 0}, PMINUQ: {"pminuq", 1, 2, 0x3b, 0, 1, 8, 0, onlyEVEX},
	PMAXUD: {"pmaxud", 1, 2, 0x3f, 0, 0, 4, 0, 0}, PMAXUQ: {"pmaxuq", 1, 2, 0x3f, 0, 1, 8, 0, onlyEVEX},
	PABSD: {"pabsd", 1, 2, 0x1e, 0, 0, 4, 0, 0}, PABSQ: {"pabsq", 1, 2, 0x1f, 0, 1, 8, 0, onlyEVEX},
	PCMPEQD: {"pcmpeqd", 1, 1, 0x76, 0, 0, 0, 0, onlyVEX}, PCMPEQQ: {"pcmpeqq", 1, 2, 0x29, 0, 1, 0, 0, onlyVEX},
	PCMPGTD: {"pcmpgtd", 1, 1, 0x66, 0, 0, 0, 0, onlyVEX}, PCMPGTQ: {"pcmpgtq", 1, 2, 0x37, 0, 1, 0, 0, onlyVEX},
	PCMPD: {"pcmpd", 1, 3, 0x1f, 0, 0, 4, 0, onlyEVEX | hasImm}, PCMPQ: {"pcmpq", 1, 3, 0x1f, 0, 1, 8, 0, onlyEVEX | hasImm},
	PTESTMB: {"ptestmb", 1, 2, 0x26, 0, 0, 0, 0, onlyEVEX},
	PTESTMD: {"ptestmd", 1, 2, 0x27, 0, 0, 4, 0, onlyEVEX}, PTESTMQ: {"ptestmq", 1, 2, 0x27, 0, 1, 8, 0, onlyEVEX},
	PSLLD: {"pslld", 1, 1, 0x72, 0, 0, 0, 8 + 6, hasImm | noMem}, PSRLD: {"psrld", 1, 1, 0x72, 0, 0, 0, 8 + 2, hasImm | noMem},
	PSRAD: {"psrad", 1, 1, 0x72, 0, 0, 0, 8 + 4, hasImm | noMem}, PSLLQ: {"psllq", 1, 1, 0x73, 0, 1, 0, 8 + 6, hasImm | noMem},
	PSRLQ:  {"psrlq", 1, 1, 0x73, 0, 1, 0, 8 + 2, hasImm | noMem},
	PSLLVD: {"psllvd", 1, 2, 0x47, 0, 0, 4, 0, 0}, PSRAVD: {"psravd", 1, 2, 0x46, 0, 0, 4, 0, 0},
	PSRLVD: {"psrlvd", 1, 2, 0x45, 0, 0, 4, 0, 0},
	PSLLVQ: {"psllvq", 1, 2, 0x47, 1, 1, 8, 0, 0}, PSRLVQ: {"psrlvq", 1, 2, 0x45, 1, 1, 8, 0, 0}, PSRAVQ: {"psravq", 1, 2, 0x46, 0, 1, 8, 0, onlyEVEX},
	PMOVZXBD: {"pmovzxbd", 1, 2, 0x31, 0, 0, 0, 0, 0}, PMOVSXBD: {"pmovsxbd", 1, 2, 0x21, 0, 0, 0, 0, 0},
	PMOVZXWD: {"pmovzxwd", 1, 2, 0x33, 0, 0, 0, 0, 0}, PMOVSXWD: {"pmovsxwd", 1, 2, 0x23, 0, 0, 0, 0, 0},
	PMOVSXDQ: {"pmovsxdq", 1, 2, 0x25, 0, 0, 0, 0, 0},
	PMOVDB:   {"pmovdb", 2, 2, 0x31, 0, 0, 0, 0, onlyEVEX | noMem}, PMOVDW: {"pmovdw", 2, 2, 0x33, 0, 0, 0, 0, onlyEVEX | noMem},
	PMOVQD: {"pmovqd", 2, 2, 0x35, 0, 0, 0, 0, onlyEVEX | noMem},
	PSHUFB: {"pshufb", 1, 2, 0x00, 0, 0, 0, 0, 0}, PSHUFD: {"pshufd", 1, 1, 0x70, 0, 0, 0, 0, hasImm},
	SHUFPS: {"shufps", 0, 1, 0xc6, 0, 0, 0, 0, hasImm}, PERMQ: {"permq", 1, 3, 0x00, 1, 1, 0, 0, hasImm},
	PERMQV:  {"permq", 1, 2, 0x36, 0, 1, 0, 0, onlyEVEX},
	PERMT2D: {"permt2d", 1, 2, 0x7e, 0, 0, 0, 0, onlyEVEX}, PERMT2Q: {"permt2q", 1, 2, 0x7e, 0, 1, 0, 0, onlyEVEX},
	PERMT2W: {"permt2w", 1, 2, 0x7d, 0, 1, 0, 0, onlyEVEX},
	PERMD:   {"permd", 1, 2, 0x36, 0, 0, 0, 0, 0}, SHUFF64X2: {"shuff64x2", 1, 3, 0x23, 0, 1, 0, 0, onlyEVEX | hasImm},
	EXTRACTI128:  {"extracti128", 1, 3, 0x39, 0, 0, 0, 0, onlyVEX | hasImm | noMem | fixed256},
	INSERTI128:   {"inserti128", 1, 3, 0x38, 0, 0, 0, 0, onlyVEX | hasImm | fixed256},
	EXTRACTI64X4: {"extracti64x4", 1, 3, 0x3b, 0, 1, 0, 0, onlyEVEX | hasImm | noMem},
	INSERTI64X4:  {"inserti64x4", 1, 3, 0x3a, 0, 1, 0, 0, onlyEVEX | hasImm},

	KMOVW:   {"kmovw", 0, 1, 0x90, 0, 0, 0, 0, onlyVEX | noMem},
	KMOVWld: {"kmovw", 0, 1, 0x90, 0, 0, 0, 0, onlyVEX}, KMOVWst: {"kmovw", 0, 1, 0x91, 0, 0, 0, 0, onlyVEX},
	KMOVWr: {"kmovw", 0, 1, 0x92, 0, 0, 0, 0, onlyVEX | noMem},
	KANDW:  {"kandw", 0, 1, 0x41, 0, 0, 0, 0, onlyVEX | noMem | fixed256}, KANDNW: {"kandnw", 0, 1, 0x42, 0, 0, 0, 0, onlyVEX | noMem | fixed256},
	KORW: {"korw", 0, 1, 0x45, 0, 0, 0, 0, onlyVEX | noMem | fixed256}, KXORW: {"kxorw", 0, 1, 0x47, 0, 0, 0, 0, onlyVEX | noMem | fixed256},
	KXNORW: {"kxnorw", 0, 1, 0x46, 0, 0, 0, 0, onlyVEX | noMem | fixed256}, KNOTW: {"knotw", 0, 1, 0x44, 0, 0, 0, 0, onlyVEX | noMem},
}
