// How much of a run lives on disk: as little as the host's memory allows.
//
// The traffic that a byte of host memory saves in a step decides which data stays. A byte of
// weights (2 an element) saves 4: forward, backward and the update read it, and the update writes
// it. A byte of boundaries, gradients (2) or state (10, BF16) saves 2, one read and one write. So
// weights leave last. State leaves first: it is the largest, and moves in one piece. Boundaries
// leave next: forward writes them, while the disk has little to do, and with exact clipping the
// reads that gradients add come at the end of the step, where everything waits for the disk. Where
// updates follow their gradients, only late gradients go to disk (DiskSends). There state comes
// back before boundaries, which have half of their traffic in forward, and gradients come back with
// state. Shares change no number.
//
// Policies with windows have only their state on disk, and move it once a window. Beside an adapter
// only frozen weights are worth it, which are read alone; boundaries stay in memory.
//
// Threads  Pure.

#pragma once

#include "core/choose/policy_choice.h"

#include <vector>

namespace mr {

// Trials of ssd-vertical that fit the host, from the most device memory to the least; where nothing
// fits, trials with all on disk. Options that the user gave hold.
std::vector<PolicyTrial> diskTrials(const RunSetup& setup, bool ratesKnown);

// Was a folder named, for a policy that can keep state there?
bool takesDisk(const RunSpec& spec);

// The policy as it was asked for, with shares that fit the host; as it is where it fits as it is.
PolicyTrial fittedToHost(const RunSetup& setup, const PolicyTrial& asked);

// The chosen policy with every late share that is worth a try; the first one wins unless another is
// faster. A late share is the part of the disk's work beside the next forward. A share of 1 leaves
// backward none, so only exact clipping tries it, which has none there anyway. Nothing where the
// user gave a share or no forecast compares them. A share may fit where the usual one, whose
// gradients need places of their own, does not. Late shares change no number.
std::vector<PolicyTrial> lateTrials(const RunSetup& setup, const PolicyNumbers& said);

} // namespace mr
