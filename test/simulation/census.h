// What can go wrong where, and how often it has: a run in which something never went wrong says nothing of it.
#pragma once

#include <cstdint>
#include <string>

namespace kbench::sim {

void begin_census();  // before the first fork: all processes count together
// It has gone wrong. Both must be in the list that census.cpp has of them.
void count(const std::string& where, const std::string& what);
double odds(const std::string& where, const std::string& what, double probability);   // high where the focus is
bool strikes(const std::string& where, const std::string& what, double probability);  // drawn, and counted
// From now on this, too, goes wrong whenever it can: what seldom happens gets its share.
void focus_on(std::uint64_t number, double probability);  // in the order of the list
void focus_nowhere();
bool is_focused(const std::string& where);
// What never went wrong, as " where/what"; not `each_fault`: where nothing ever did.
std::string never_tried(bool each_fault);
void print_census();

}  // namespace kbench::sim
