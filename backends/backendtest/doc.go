// Package backendtest is the conformance suite that every driver and every decorator passes.
//
// It answers: what does the contract of package backends mean, case by case? Each sentence
// of its doc comments that can be observed from outside is a case here. A driver's own test
// file builds a [Harness] and calls [Run]; it needs no other test of these semantics:
//
//	func TestConformance(t *testing.T) {
//		backendtest.Run(t, func(t testing.TB) backendtest.Harness {
//			clock := ...
//			return backendtest.Harness{Open: ..., Queue: ..., Now: ..., Advance: ...}
//		})
//	}
//
// A case is skipped only when the backend lacks the capability it is about, and the case
// "capabilities" checks that what is lacking says so. Time passes by the harness's clock
// alone: the suite never sleeps.
//
// The suite is proved by mutants: drivers with one fault each, in mutants_test.go. Every
// case has at least one mutant that it, by name, catches.
package backendtest
