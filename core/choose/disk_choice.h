// How much of a run lives on disk: as little as the host's memory allows.
//
// What a byte of host memory saves in traffic a step decides what stays: of weights (2 bytes an
// element) each saves 4, because they are read for forward, backward and their update and written
// once; of boundaries, gradients (2) and state (10, BF16) each saves 2, one read and one write. So
// weights leave last. State leaves first: it is the most, and is read and written in one piece.
// Then boundaries: they are written in forward, where the disk has little to do, and with exact
// clipping what gradients add is read at the end of the step, where everything waits for the disk.
// Where updates follow their gradients, those pass by the disk (DiskSends) but for what is late; so
// state comes back before boundaries, which take half of their traffic from forward, and gradients
// with it. Shares change no number.
//
// Policies with windows have their state alone there, and move it once a window.
//
// Threads  Pure.

#pragma once

#include "core/choose/policy_choice.h"

#include <vector>

namespace mr {

// Trials of ssd-vertical that fit the host, from what needs the most device memory to what needs
// the least; where nothing fits, those with all on disk. What the user said holds.
std::vector<PolicyTrial> diskTrials(const RunSetup& setup);

// Was a folder named, for a policy that can keep state there?
bool takesDisk(const RunSpec& spec);

// The policy as it was asked for, with shares that fit the host; as it is where it fits as it is.
PolicyTrial fittedToHost(const RunSetup& setup, const PolicyTrial& asked);

// The policy that was chosen with every late share that is worth a try, first the one that is taken
// where none is faster: how much of the disk's work is done beside the next forward. With all of it
// there backward would have none beside it, so that is for exact clipping, which has none anyway.
// Nothing where one was said or where no
// forecast compares them. One may fit where the usual one, whose gradients need places of their
// own, does not. Late shares change no number.
std::vector<PolicyTrial> lateTrials(const RunSetup& setup, const PolicyNumbers& said);

} // namespace mr
