#include "text/resume_words.h"

namespace mr::ui {

QString ResumeWords::action(bool startsAgain)
{
    return startsAgain ? tr("Start again") : tr("Resume");
}

QString ResumeWords::help(bool startsAgain)
{
    return startsAgain ? tr("It ended before its first checkpoint: it starts again from the "
                            "beginning, as it was asked for then")
                       : tr("Continue this run from its last checkpoint");
}

} // namespace mr::ui
