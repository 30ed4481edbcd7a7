//go:build cuda && linux && cgo

package main

import _ "github.com/loris-ml/loris/dist/nccl"
