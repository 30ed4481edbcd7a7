package main

import "testing"

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	if err := run("../../..", true); err != nil {
		t.Fatal(err)
	}
}
