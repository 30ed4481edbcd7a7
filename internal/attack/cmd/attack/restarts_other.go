//go:build !linux

package main

// systemCommands are those that need Linux.
func systemCommands() map[string]command { return nil }
