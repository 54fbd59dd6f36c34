// Glossary: the words of the window that a hobbyist will not know, in a sentence each, and the keys
// of its pages.
//
// Threads  GUI.

#pragma once

#include "pages/help_dialog.h"

#include <QCoreApplication>
#include <QVector>

namespace mr::ui {

struct Glossary {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::Glossary)

public:
    static QVector<HelpEntry> words();
    static QVector<HelpEntry> shortcuts();
};

} // namespace mr::ui
