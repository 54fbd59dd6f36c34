// Sorts and filters the runs: all words of the text must occur, the state must be the chosen one.
// "tag:keep" is a run that has this tag.

#pragma once

#include "models/word_filter.h"

namespace mr::ui {

class RunFilterModel final : public WordFilter
{
    Q_OBJECT

public:
    // Runs that a state filter lets through.
    enum class States { All, Active, Done, Stopped, Failed };

    explicit RunFilterModel(QObject* parent = nullptr);

    void setStates(States states);

protected:
    bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
    bool hasWord(const QModelIndex& cell, const QString& word) const override;

private:
    States m_states = States::All;
};

} // namespace mr::ui
