// CallSite: the line a call stands at. clang 14 has no std::source_location.

#pragma once

namespace mr::simt {

class CallSite
{
public:
    // As a default argument: of the call that leaves it out.
    static constexpr CallSite current(
        const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) noexcept
    {
        return CallSite(file, line);
    }

    constexpr const char* fileName() const noexcept { return m_file; }
    constexpr unsigned line() const noexcept { return m_line; }

private:
    constexpr CallSite(const char* file, unsigned line) noexcept
        : m_file(file)
        , m_line(line)
    {
    }

    const char* m_file;
    unsigned m_line;
};

} // namespace mr::simt
