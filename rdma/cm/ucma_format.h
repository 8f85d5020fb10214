// What the answers to librdmacm's commands say of an id.
#pragma once

#include "rdma/cm/id.h"
#include "rdma/cm/ucma_abi.h"

namespace rocefs {

// All of them are zero at first.
void format_addresses(const CmId& id, ucma::AddressAnswer& out);
void format_gids(const CmId& id, ucma::AddressAnswer& out);
void format_path(const CmId& id, ucma::PathAnswer& out);
void format_route(const CmId& id, ucma::RouteAnswer& out);
// `mask` is of QpMask.
void format_attributes(const Port& port, QpState to, const QpAttributes& attributes, uint32_t mask,
                       ucma::QpAttr& out);
// But for whose it is.
void format_event(const CmId& id, const CmEvent& event, ucma::EventAnswer& out);

}  // namespace rocefs
