// fuzz_checkpoint_folder SECONDS SEED: inputs of random lines, until the time is over. Each is
// printed before it runs, so the last one ended the program.

#include "fuzz/targets.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

namespace {

constexpr int kMostLines = 5;
constexpr std::string_view kOps = "fxagsdelLpPjmM";
constexpr const char* kNumbers[] = {"-1", "0", "1", "2", "7", "2147483647", "9007199254740992",
    "1e300", "null", "\"x\"", "[]", "{}"};
constexpr const char* kPlaces[] = {"/step", "/update_count", "/tokens", "/sampler/2", "/sampler/3",
    "/window/window", "/window/steps_into_window", "/window/landed", "/window/ownership",
    "/window/banks/0/0", "/window/banks/1/2", "/window/scalars/0/1", "/window/scalars/1/0",
    "/window/job", "/window/job/3", "/window/job/0", "/last_grad_norm", "/eval_loss", "/run"};

std::string randomInput(std::mt19937_64& random)
{
    const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    std::string text;
    for (std::size_t line = 1 + below(kMostLines); line > 0; --line) {
        const char op = kOps[below(kOps.size())];
        text += op;
        text += ' ';
        if (op == 'j')
            text += std::string(kPlaces[below(std::size(kPlaces))]) + " " +
                    kNumbers[below(std::size(kNumbers))];
        else
            text += std::to_string(below(8)) + " " + std::to_string(random() % 100'000) + " " +
                    std::to_string(below(8));
        text += '\n';
    }
    return below(2) == 0 ? text : text + "S\n";
}

} // namespace

int main(int argc, char** argv)
{
    const int seconds = argc > 1 ? std::atoi(argv[1]) : 60;
    std::mt19937_64 random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    long inputs = 0;
    for (; std::chrono::steady_clock::now() < end; ++inputs) {
        const std::string input = randomInput(random);
        (void)std::fprintf(stderr, "-- input %ld\n%s", inputs, input.c_str());
        mr::fuzz::checkpointFolder(input);
    }
    (void)std::printf("%ld inputs, none found anything\n", inputs);
    return 0;
}
