//go:build !unix

package main

import "errors"

func processorTime() (int64, error) {
	return 0, errors.New("--cpu needs a system that tells a process its processor time")
}
