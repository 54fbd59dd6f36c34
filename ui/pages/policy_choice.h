// PolicyChoice: the policy to train under, and optionally a second one to compare it with.
//
// Only the editors: the form that owns this places them and calls retranslate().
//
// Threads    GUI.
// Ownership  The editors belong to the form they are placed in.

#pragma once

#include <millrace/planner.h>

#include <QObject>
#include <QString>

#include <string>
#include <vector>

class QCheckBox;
class QComboBox;

namespace mr::ui {

class PolicyChoice final : public QObject
{
    Q_OBJECT

public:
    PolicyChoice(const std::vector<PolicyName>& policies, QWidget* form);

    QComboBox* first() const { return m_first; }
    QCheckBox* compare() const { return m_compare; }
    QComboBox* second() const { return m_second; }

    std::string policy() const;
    std::string secondPolicy() const; // empty: nothing is compared
    // An unknown one is the first of the list; compares nothing.
    void setPolicy(const std::string& policy);
    void retranslate();

signals:
    void compareChanged(); // the boxes have their own signals

private:
    void onCompareToggled(bool on);

    const std::vector<PolicyName> m_policies;
    QComboBox* m_first;
    QCheckBox* m_compare;
    QComboBox* m_second;
};

} // namespace mr::ui
