// Sorts and filters the runs: all words of the text must occur, the state must be the chosen one.
// "tag:keep" is a run that has this tag.

#pragma once

#include <QSortFilterProxyModel>
#include <QString>
#include <QStringList>

namespace mr::ui {

class RunFilterModel final : public QSortFilterProxyModel
{
    Q_OBJECT

public:
    // Runs that a state filter lets through.
    enum class States { All, Active, Done, Stopped, Failed };

    explicit RunFilterModel(QObject* parent = nullptr);

    void setText(const QString& text);
    void setStates(States states);

protected:
    bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
    // Unknown values come last in both orders.
    bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;

private:
    QStringList m_words;
    States m_states = States::All;
};

} // namespace mr::ui
