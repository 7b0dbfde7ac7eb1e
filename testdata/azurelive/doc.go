// Azurelive runs the live tests of the Azure SDK for Go, those that talk to a namespace, against dlq
// serve over TLS, and tells how many of them pass:
//
//	go run ./testdata/azurelive
//
// The tests are those of the published module, untouched. It is copied out of the module cache, because
// its packages are internal and its tests run from their own folders, and one thing around it is
// replaced: the credential that its test helper makes, which would want a tenant of Entra ID, is a
// static token. Two servers stand for the two namespaces that the tests want, Standard and Premium.
// Tests that cannot pass without Azure are listed with their reasons in excluded.txt.
package main
