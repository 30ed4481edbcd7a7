package main

import "testing"

func TestGeneratedFileIsCurrent(t *testing.T) {
	if err := run("../../ir", true); err != nil {
		t.Error(err)
	}
}
