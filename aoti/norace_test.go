//go:build !race

package aoti_test

const raceEnabled = false
