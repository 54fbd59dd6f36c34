// A policy as people read it: its plain name, and beside it the one that records have.

#pragma once

#include <millrace/planner.h>

#include <QCoreApplication>
#include <QString>

namespace mr::ui {

struct PolicyWords {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::PolicyWords)

public:
    // "State in RAM (zero-offload)"
    static QString shown(const PolicyName& policy);
};

} // namespace mr::ui
