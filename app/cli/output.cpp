#include "app/cli/output.h"

#include "core/base/shown_text.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

namespace mr::app {
namespace {

constexpr int kOutputMissing = 4;
constexpr int kUnreadMs = 3000;                // wait on a full pipe before a message
constexpr std::string_view kNextLine = "\n  "; // between the lines of a message

// The first error of stdout; 0: none. Later lines are not written: a reader would miss the lines
// between.
std::atomic<int> firstError = 0;

void note(int error)
{
    int none = 0;
    firstError.compare_exchange_strong(none, error == 0 ? EIO : error);
}

// A full pipe blocks its writer, as in any program. Each time, stderr says so once.
void tellIfUnread()
{
    pollfd output{STDOUT_FILENO, POLLOUT, 0};
    if (::poll(&output, 1, kUnreadMs) != 0)
        return;
    std::fputs(
        "standard output is full and nobody reads it: the run waits until somebody does\n", stderr);
    if (::poll(&output, 1, -1) > 0)
        std::fputs("standard output is read again: the run goes on\n", stderr);
}

void write(std::string_view text, bool isLine)
{
    if (firstError != 0)
        return;
    flockfile(stdout); // records come from more than one thread, and a line stays whole
    tellIfUnread();
    errno = 0;
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
                         (!isLine || std::fputc('\n', stdout) != EOF) && std::fflush(stdout) == 0;
    if (!written)
        note(errno);
    funlockfile(stdout);
}

[[gnu::format(printf, 1, 0)]] std::string formattedList(const char* format, std::va_list list)
{
    std::va_list again;
    va_copy(again, list);
    const int bytes = std::vsnprintf(nullptr, 0, format, list);
    std::string text(static_cast<std::size_t>(std::max(bytes, 0)), '\0');
    (void)std::vsnprintf(text.data(), text.size() + 1, format, again);
    va_end(again);
    return text;
}

// Keeps line ends and tabs; spells out the control characters that a terminal takes as commands.
std::string withoutCommands(std::string_view piece)
{
    std::string out;
    while (!piece.empty()) {
        const std::size_t bytes = std::min(piece.find_first_of("\n\t"), piece.size());
        out += terminalText(piece.substr(0, bytes));
        out += piece.substr(bytes, 1);
        piece.remove_prefix(std::min(bytes + 1, piece.size()));
    }
    return out;
}

} // namespace

void prepareOutput()
{
    for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        while (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
            if (::open("/dev/null", O_RDWR) < 0) // takes the lowest that is free
                break;
    (void)std::signal(SIGPIPE, SIG_IGN);
    (void)std::signal(SIGXFSZ, SIG_IGN);
}

void printLine(std::string_view line)
{
    write(line, true);
}

void printJson(const nlohmann::json& value, int indent)
{
    printLine(value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string formatted(const char* format, ...)
{
    std::va_list arguments;
    va_start(arguments, format);
    std::string text = formattedList(format, arguments);
    va_end(arguments);
    return text;
}

void printText(const char* format, ...)
{
    std::va_list arguments;
    va_start(arguments, format);
    const std::string text = formattedList(format, arguments);
    va_end(arguments);
    printLine(terminalText(text));
}

void printPiece(std::string_view piece)
{
    static const bool isTerminal = ::isatty(STDOUT_FILENO) == 1;
    write(isTerminal ? withoutCommands(piece) : std::string(piece), false);
}

bool isOutputLost() noexcept
{
    return firstError != 0;
}

void say(std::string_view text)
{
    std::string line = "millrace: ";
    while (!text.empty()) {
        const std::size_t bytes = std::min(text.find(kNextLine), text.size());
        line += terminalText(text.substr(0, bytes));
        line += text.substr(bytes, kNextLine.size());
        text.remove_prefix(std::min(bytes + kNextLine.size(), text.size()));
    }
    line += '\n';
    (void)std::fwrite(line.data(), 1, line.size(), stderr);
    (void)std::fflush(stderr);
}

int finishOutput(int code)
{
    if (firstError == 0 && std::fflush(stdout) != 0)
        note(errno);
    const int error = firstError;
    if (error == 0 || error == EPIPE)
        return code;
    say("standard output could not be written (" + std::generic_category().message(error) +
        "); its last lines are missing");
    return code == 0 ? kOutputMissing : code;
}

} // namespace mr::app
