// Formatting of an id's state in answers to librdmacm's commands.
#pragma once

#include "rdma/cm/id.h"
#include "rdma/cm/ucma_abi.h"

namespace rocefs {

// `out` is zero at first.
void format_addresses(const CmId& id, ucma::AddressAnswer& out);
void format_gids(const CmId& id, ucma::AddressAnswer& out);
void format_path(const CmId& id, ucma::PathAnswer& out);
void format_route(const CmId& id, ucma::RouteAnswer& out);
// `mask` is a QpMask.
void format_attributes(const Port& port, QpState to, const QpAttributes& attributes, uint32_t mask,
                       ucma::QpAttr& out);
// Fills all but the fields that name the id.
void format_event(const CmId& id, const CmEvent& event, ucma::EventAnswer& out);

}  // namespace rocefs
