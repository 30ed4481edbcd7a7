// Package pagetest tests the server's page in a browser. It is a module of its own, so that nobody
// else needs what drives the browser.
package pagetest
