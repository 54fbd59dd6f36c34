// Words of the button that resumes a run: a run without a checkpoint starts again.

#pragma once

#include <QCoreApplication>
#include <QString>

namespace mr::ui {

class ResumeWords
{
    Q_DECLARE_TR_FUNCTIONS(mr::ui::ResumeWords)

public:
    static QString action(bool startsAgain);
    static QString help(bool startsAgain);
};

} // namespace mr::ui
