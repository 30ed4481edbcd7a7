// Package serve serves compiled models over the Open Inference Protocol.
package serve
