// Package pb has the protocols' messages: inference is the Open Inference Protocol
// with Triton's extensions, weights the protocol of Loris for weights.
package pb

//go:generate ../../../scripts/serve-proto.sh
