//go:build race

package aoti_test

const raceEnabled = true
