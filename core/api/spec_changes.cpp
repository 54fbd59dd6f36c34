#include <millrace/spec_fields.h>

namespace mr {

RunSpec edited(const RunSpec& given, const RunSpec& shown, const RunSpec& now)
{
    RunSpec spec = given;
    for (const SpecField& field : specFields())
        std::visit(
            [&](auto member) {
                if (now.*member != shown.*member)
                    spec.*member = now.*member;
            },
            field.member);
    return spec;
}

} // namespace mr
