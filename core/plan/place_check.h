// PlaceCheck: a place is written before it is read, and written again only once nothing needs its
// content. The parts of the checker use it for the places of their idea; they check the content.
//
// It keeps a PlaceBook of its own over the finished plan, and asks the plan's waits.
//
// Threads  One owner.
// Order    use() for each task of the plan that touches `places`, in the plan's order.
// Errors   use() names the rule of the place and the task that comes too early.

#pragma once

#include "core/plan/place_book.h"
#include "core/plan/plan_check.h"

namespace mr {

class PlaceCheck
{
public:
    PlaceCheck(const PlanUnderCheck& check, Places places)
        : m_check(check)
        , m_places(places)
    {
    }

    Status use(TaskIndex index);

private:
    Status needOver(TaskIndex index, const PlaceUse& use) const;

    const PlanUnderCheck& m_check;
    Places m_places;
    PlaceBook m_book;
};

} // namespace mr
