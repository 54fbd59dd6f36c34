// How much of a run lives on disk: as little as the host's memory allows.
//
// What a byte of host memory saves in traffic a step decides what stays: of weights (2 bytes an
// element) each saves 4, because they are read for forward, backward and their update and written
// once; of gradients (2) and state (10, BF16) each saves 2, one read and one write. So weights
// leave last; of the others gradients, because what is left then is read and written in one piece.
// Shares change no number.
//
// Policies with windows have their state alone there, and move it once a window.
//
// Threads  Pure.

#pragma once

#include "core/engine/policy_choice.h"

#include <vector>

namespace mr {

// Trials of ssd-vertical that fit the host, from what needs the most device memory to what needs
// the least; where nothing fits, those with all on disk. What the user said holds.
std::vector<PolicyTrial> diskTrials(const RunSetup& setup);

// Was a folder named, for a policy that can keep state there?
bool takesDisk(const RunSpec& spec);

// The policy as it was asked for, with shares that fit the host; as it is where it fits as it is.
PolicyTrial fittedToHost(const RunSetup& setup, const PolicyTrial& asked);

} // namespace mr
