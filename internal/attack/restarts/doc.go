// Package restarts starts a process that trains, compiles, saves and loads, has it run out of what a
// system gives (descriptors, address space, length of files, room on the disk), sets its clock and
// the times of its files back and ahead, stops it for a time, kills it, and starts it again. Each
// start must find what the last one has saved, and every number must be right until the end. It needs
// Linux.
package restarts
