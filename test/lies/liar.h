/* The part of the liar for librdmacm. */
#ifndef ROCEFS_TEST_LIES_LIAR_H
#define ROCEFS_TEST_LIES_LIAR_H

#include <sys/socket.h>

#define NOBODY UINT64_C(0x4141414141414140) /* no pointer */

/* Sees what is sent, and changes what has been received if it is an answer to a command of
 * librdmacm's; the octets that it now has. */
void see_cm_command(const struct msghdr* message);
ssize_t lie_of_cm(struct msghdr* message, ssize_t size);

#endif
