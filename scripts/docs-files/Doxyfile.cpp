# The C++ reference: include/tarsia.hpp through filter.py. These settings come behind those of Doxyfile. Members
# that only pass a call on have no comment; filter.py names the C function.
PROJECT_BRIEF          = "Sparse matrix products: the C++ interface"
OPTIMIZE_OUTPUT_FOR_C  = NO
FILTER_PATTERNS        = *.hpp="scripts/docs-files/filter.py"
EXTRACT_ALL            = YES
EXTRACT_PRIVATE        = NO
EXCLUDE_SYMBOLS        = tarsia::detail TARSIA_HPP*
WARN_IF_UNDOCUMENTED   = NO
WARN_IF_INCOMPLETE_DOC = NO
WARN_NO_PARAMDOC       = NO
SHOW_HEADERFILE        = NO
HIDE_FRIEND_COMPOUNDS  = YES
